"""Models in half precision: weights and nodes in 16 bits, the casts between them, what stays in 32."""
