"""What a step may read and write, and how a refusal is explained."""
