"""Numba in half the time, for a process that does nothing but compile kernels.

Left to itself, Numba optimises every function it meets and makes machine code of it, lest somebody
call it, and does both again for whatever the function is compiled into. Here there is machine code
of what somebody asks the address of, and those are the kernels; all else becomes part of them.

This reaches into Numba. So it is for processes whose failure costs no more than time: then the
kernels are compiled in the usual way, when they are first called.
"""

import gc

from numba.core.codegen import JITCodeLibrary
from numba.core.registry import cpu_target


class _Library(JITCodeLibrary):
    """Functions of which machine code is made when one of them is asked for."""

    def _optimize_final_module(self):
        pass  # `get_pointer_to_function` does

    def _finalize_final_module(self):
        if getattr(self, "_compiled_object", None):  # from the cache: there is machine code
            super()._finalize_final_module()
        self._finalized = True

    def get_pointer_to_function(self, name):
        self._ensure_finalized()
        if any(function.name == name for function in self.get_defined_functions()):
            super()._optimize_final_module()
            super()._finalize_final_module()
        return super().get_pointer_to_function(name)


def use():
    """Compile in this way from here on, and leave out the collection of garbage."""
    gc.disable()
    codegen = cpu_target.target_context.codegen()
    usual = codegen.set_env

    def set_env(name, environment):
        if codegen._engine.is_symbol_defined(name):
            usual(name, environment)

    codegen._library_class, codegen.set_env = _Library, set_env
