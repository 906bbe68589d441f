"""16-bit sums of x86 processors without VNNI."""
