"""What runs came to beside torch, and variants and modules beside each other."""
