"""Writes a convolutional classifier as an ONNX model.

Where onnxruntime is installed, it runs the model beside tt and the results are compared.
"""
import argparse
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
try:
    import tt
except ImportError:  # in the tree, not installed
    sys.path.insert(0, str(ROOT / "bindings/python"))
    import tt
from tt import nn


def digits_net():
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 16, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64, 10),
    )


def compare(path, model, images):
    """Prints the largest difference between tt's and onnxruntime's results."""
    try:
        import onnxruntime
    except ImportError:
        print("onnxruntime is not installed: the model was not run")
        return
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    [got] = session.run(None, {"images": images.numpy()})
    difference = (tt.from_numpy(got) - model(images)).abs().max().item()
    print(f"onnxruntime {onnxruntime.__version__}: largest difference {difference:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoint", help="state dict of a trained net (tt.save)")
    parser.add_argument("--batch", type=int, default=4, help="images in a call of the model")
    parser.add_argument("path", nargs="?", default="digits.onnx")
    options = parser.parse_args()
    if options.batch < 1:
        parser.error("--batch must be positive")
    model = digits_net()
    if options.checkpoint:
        model.load_state_dict(tt.load(options.checkpoint))
    model.eval()
    images = tt.rand(options.batch, 1, 8, 8)
    names = {"input_names": ["images"], "output_names": ["logits"]}
    tt.onnx.export(model, images, options.path, **names)
    print(f"wrote {options.path}: {os.path.getsize(options.path)} bytes")
    with tt.no_grad():
        compare(options.path, model, images)


if __name__ == "__main__":
    try:
        main()
    except (OSError, ValueError, RuntimeError) as error:
        sys.exit(f"export_onnx: {error}")
