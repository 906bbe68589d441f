"""What features expand with: the graph in the making, and the steps that several of them share."""
