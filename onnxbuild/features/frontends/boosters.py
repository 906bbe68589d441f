"""XGBoost and LightGBM: trained classifiers, regressors and Boosters, converted by onnxmltools and held against themselves."""

from onnxbuild.expansion.model_source import ModelSource
from onnxbuild.frontend_steps.converted import estimator_frontend
from onnxbuild.onnxkit.estimators.made import LIGHTGBM, XGBOOST
from onnxbuild.onnxkit.estimators.outlines import outline_of_lightgbm, outline_of_xgboost

_SAYS = "relative to this file: it says how many columns its rows have"


XGBOOST_FEATURE = estimator_frontend(
    XGBOOST,
    ModelSource(
        help=f"a .json or .ubj file that XGBoost's `save_model` wrote, {_SAYS}",
        look=outline_of_xgboost,
        shared_suffixes=(".json", ".ubj"),
    ),
    "xgboost",
)

LIGHTGBM_FEATURE = estimator_frontend(
    LIGHTGBM,
    ModelSource(
        help=f"a text file that LightGBM's `save_model` wrote, {_SAYS}",
        look=outline_of_lightgbm,
        shared_suffixes=(".txt",),
    ),
    "lightgbm",
)
