"""The course of diabetes, from scikit-learn's own data: trees of XGBoost."""

import numpy as np
import xgboost
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split


def split():
    """Training and held-out rows, then their targets."""
    data = load_diabetes()
    return train_test_split(data.data, data.target, test_size=0.3, random_state=0)


def build():
    rows, _, targets, _ = split()
    trees = xgboost.XGBRegressor(
        n_estimators=60, max_depth=4, learning_rate=0.1, random_state=0, n_jobs=1
    )
    return trees.fit(rows, targets)


def samples():
    _, rows, _, _ = split()
    for some in np.array_split(rows.astype(np.float32), 3):
        yield {"features": some}
