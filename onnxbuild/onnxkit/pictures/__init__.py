"""Pictures of models: blocks folded and laid out in layers, as SVG and as a page."""
