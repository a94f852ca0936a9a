"""Networks to TensorFlow and back.

    model = to_keras(network, example_inputs)     a Keras model with the network's structure and weights
    export_weights(network, model)                the network's weights into that model, once more
    import_weights(model, network)                the model's weights into a network of the same structure
    predict(model, inputs)                        what it answers, with PyTorch's tensors at both ends
    save(model, Path("network.keras"))            Keras' own file format
    model = load(Path("network.keras"))

In evaluation mode both compute the same, up to rounding. Images are batch × height × width × channels in
Keras and batch × channels × height × width in PyTorch. Layers with weights have the same name on both sides,
which is how weights find their place: the Keras layer is called what `network.named_modules()` says.

In training mode one thing differs: from the variance of a batch, batch normalisation takes the unbiased
estimate into its running variance in PyTorch, and the biased one in Keras.
"""

from rota.training.keras.translate import predict, to_keras
from rota.training.keras.weights import export_weights, import_weights, load, save

__all__ = ["export_weights", "import_weights", "load", "predict", "save", "to_keras"]
