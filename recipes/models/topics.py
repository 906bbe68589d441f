"""Sentences and their topic: TF-IDF of words and pairs of words, then logistic regression."""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

SENTENCES = {
    "weather": (
        "Rain is expected in the north by the evening",
        "A warm wind from the sea will clear the clouds",
        "Snow fell all night and closed the mountain roads",
        "Tomorrow stays dry, with sun in the afternoon",
        "The storm brought hail and 90 km/h of wind",
        "Im März schmilzt der Schnee, und es regnet öfter",
    ),
    "food": (
        "Chop the onions and fry them in butter",
        "The bread needs two hours to rise before baking",
        "Add salt, pepper and a spoon of olive oil",
        "Crème brûlée is served cold with a hot crust",
        "She ordered soup, a salad and grilled fish",
        "Boil the rice until the water is gone",
    ),
    "sport": (
        "The keeper saved a penalty in the last minute",
        "She won the race by half a second",
        "Both teams scored twice before the break",
        "The champion lost the first set and won the match",
        "He runs ten kilometres every morning before work",
        "The coach changed three players at half time",
    ),
}
UNSEEN = (
    "The wind and the rain stopped the match",
    "A salad with olive oil, salt and onions",
    "SHE SCORED IN THE LAST MINUTE OF THE RACE",
    "Öfter Schnee im März",
    "crème with a spoon of butter, served hot",
    "nothing of this is known",
    "",
)


def build():
    texts = [text for some in SENTENCES.values() for text in some]
    topics = [topic for topic, some in SENTENCES.items() for _ in some]
    words = TfidfVectorizer(ngram_range=(1, 2))
    return make_pipeline(words, LogisticRegression(C=10.0, max_iter=1000)).fit(texts, topics)


def samples():
    yield {"text": np.array(UNSEEN)}
    for some in SENTENCES.values():
        yield {"text": np.array(some)}
