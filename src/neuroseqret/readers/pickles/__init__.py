"""Pickles, read only if the caller asks for it, and even then without running anything in them.

- `opt_in.py`: the check that the caller asked for it
- `safe_pickle.py`: an unpickler that knows containers, numbers, strings and arrays, and nothing else
- `torch_file.py`: files of `torch.save`, read without torch
"""
