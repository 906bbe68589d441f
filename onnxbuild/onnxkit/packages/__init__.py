"""Parts that packages of all formats share: a model's signature in any language, golden points, their verdict."""
