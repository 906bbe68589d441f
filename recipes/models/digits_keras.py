"""Feeds and the metric of digits_keras.yaml: the digits of digits.py, as Keras takes them (channels last)."""

import digits

accuracy = digits.accuracy


def last(image):
    """Images, (n, 8, 8, 1), of (n, 1, 8, 8)."""
    return image.transpose(0, 2, 3, 1).copy()


def calibration():
    """Feeds to calibrate with, of the training share alone."""
    for feeds in digits.calibration():
        yield {"image": last(feeds["image"])}


def evaluation():
    """(feeds, labels) of the held-out share, in batches."""
    for feeds, labels in digits.evaluation():
        yield {"image": last(feeds["image"])}, labels
