"""Estimators of scikit-learn, XGBoost and LightGBM: loaded, converted to ONNX, and run as they are."""
