"""Tumours of scikit-learn's own data: scaled measurements, gradient boosting by histograms."""

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def split():
    """Training and held-out rows, then their labels: 'benign' or 'malignant'."""
    data = load_breast_cancer()
    labels = data.target_names[data.target]
    return train_test_split(data.data, labels, test_size=0.3, random_state=0)


def build():
    rows, _, labels, _ = split()
    boosting = HistGradientBoostingClassifier(max_iter=40, random_state=0)
    return make_pipeline(StandardScaler(), boosting).fit(rows, labels)


def samples():
    """Held-out rows: those trained on lie on the trees' thresholds."""
    _, rows, _, _ = split()
    for some in np.array_split(rows.astype(np.float32), 3):
        yield {"features": some}


def evaluation():
    _, rows, _, labels = split()
    yield {"features": rows.astype(np.float32)}, labels


def accuracy(outputs, labels):
    found = np.concatenate([each["label"] for each in outputs])
    return float((found == np.concatenate(labels)).mean())
