"""How much each node and block loses in fewer bits."""
