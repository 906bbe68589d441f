"""Kinds of wine, from scikit-learn's own data: the trees of weights/wine.txt, and rows that they were not trained on.

`python recipes/models/wine.py` trains them again.
"""

from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

WEIGHTS = Path(__file__).parents[1] / "weights"


def split():
    """Training and held-out rows, then their kinds."""
    data = load_wine()
    return train_test_split(
        data.data, data.target, test_size=0.3, random_state=0, stratify=data.target
    )


def samples():
    _, rows, _, _ = split()
    for some in np.array_split(rows.astype(np.float32), 3):
        yield {"features": some}


def evaluation():
    _, rows, _, kinds = split()
    yield {"features": rows.astype(np.float32)}, kinds


def accuracy(outputs, kinds):
    found = np.concatenate([each["label"] for each in outputs])
    return float((found == np.concatenate(kinds)).mean())


def main():
    import lightgbm

    rows, _, kinds, _ = split()
    trees = lightgbm.LGBMClassifier(
        n_estimators=20, num_leaves=7, min_child_samples=5, random_state=0, n_jobs=1, verbose=-1
    )
    trees.fit(rows, kinds).booster_.save_model(WEIGHTS / "wine.txt")


if __name__ == "__main__":
    main()
