"""The machine that steps run on, as data: its processor, its cores."""
