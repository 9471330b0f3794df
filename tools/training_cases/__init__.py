"""Small networks that are trained by PyTorch and by MONET, one file per family."""
