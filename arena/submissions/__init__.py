"""What happens to a submitted file before it may race: the static gate.

The gate is a filter, the sandbox is the wall. It never runs the file: a process with
limits of its own reads it (`worker`), and what that found is compared with the bank's
problems (`answers`) and with earlier submissions (`copies`). `admission.check` is the
whole of it. The modules that the worker imports need the standard library alone.
"""
