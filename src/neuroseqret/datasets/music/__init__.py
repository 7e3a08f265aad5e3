"""The music of the demo: melodies from the scores in the `music21` package.

- `repertoires.py`: the data folder of fifteen kinds of music
- `notes.py`: a melody: onsets and pitches
- `abc.py`, `kern.py`, `musicxml.py`: melodies from ABC notation, Humdrum and MusicXML files
"""
