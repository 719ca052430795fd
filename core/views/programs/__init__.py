"""TensorIR and Relax as programs: NumPy, tensor expressions, and the BlockBuilder."""
