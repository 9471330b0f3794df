"""Small networks that PyTorch and MONET train, one file per family."""
