"""What every trained method shares: the task it learns from and the loop that trains it.

task         TrainingTask: queries, corpus, relevance, seed, budget, log and checkpoint in one object
unlabelled   a task made from an unlabelled corpus
sampling     batches of (anchor, positive) pairs
augment      random crops of training sequences
losses       ranking losses over a block of scores
loop         the training loop
ranks        training on several processes
checkpoint   the state of a phase, saved so that an interrupted run can continue
log          the training log as JSON lines and as a picture
progress     how far a phase is, and how long the rest takes
bars         where that is shown: terminal, notebook or log
"""
