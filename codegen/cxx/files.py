"""The C++ side: internal API, implementations, autograd, modules, the list of all operators."""
from codegen.cxx import autograd, build_lists, manifest, modules, ops as operators


def generate(ops, groups):
    files = operators.generate(ops) | autograd.generate(ops) | manifest.generate(ops)
    return files | modules.generate(ops, groups)


def generate_build_lists(files, api):
    return build_lists.generate(files, api)
