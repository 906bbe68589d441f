"""TorchScript, torch.export and AOTInductor programs."""
