"""Generative models of event sequences and the statistics that come from them.

Neural point process
    time_scale           the time scale of the data; network inputs of padded events
    shared_classes       a bounded number of classes for many marks
    mark_classes         the same as a layer of a network
    dropout              dropout from random bytes, cheap on a CPU
    encoder              causal self-attention over events
    hawkes_encoder       the same in the way of the Transformer Hawkes Process
    heads                log-normal gap and softmax mark of the next event; the log-likelihood
    neural_process       encoder and heads together
    fisher               Fisher vectors: the gradient of the log-likelihood, whitened

Queries against candidates
    unwarp               a learned monotone map of query times
    similarity           model-independent similarity of times and marks
    cross_process        the likelihood of a corpus sequence given a query
    divergence           Kullback-Leibler divergence between next-event distributions

Features that need no training
    features             what they compare, where they are clipped, what events have in them
    event_classes        gaps on the scale of the corpus, their classes, parts of the window

Markov-renewal process
    markov_renewal       tables of marks and gaps, and their whitened features
    markov_loops         the compiled loops of markov_renewal
    event_tables         events as cells of contingency tables
    conditioned_tables   tables conditioned on sets of sequences

Values of events
    event_values         declared columns of events on one scale
    value_tables         tables of values, beside those of marks and gaps

Local patterns
    convolution_bank     random convolutions over the events, pooled
    bank_kernels         their random kernels and codes of marks
    bank_loops           their compiled loops
    lanes                vectors of numbers in registers, for these loops
    local_states         local patterns around every event
    event_attention      attention between the events of two sequences by their local states
"""
