"""The C++ side: internal API, implementations, autograd, modules, the list of all operators."""
from codegen.cxx import autograd, build_lists, c_expressions, manifest, modules, plans
from codegen.cxx import ops as operators


def generate(ops, groups, root):
    files = operators.generate(ops) | autograd.generate(ops) | manifest.generate(ops)
    files |= c_expressions.generate(ops)
    return files | modules.generate(ops, groups) | plans.generate(root)


def generate_build_lists(files, api):
    return build_lists.generate(files, api)
