"""The page that shows a build: typed blocks, made from the reports of steps, drawn as HTML with SVG."""
