"""Operators of your own; params.yaml names this file as `operators_file`.

An operator is one class: subclass SelfAttention or an operator, give it a name, an equation and a source, and list the
name in `operators` of params.yaml. It is then trained, counted, timed and reported beside the others. `linear_layers`
names its Linear layers; `roles` says which of them gives the queries, the keys and the values, or
`compute_queries_keys_values` computes them otherwise. Further parameters stand in `list_parameter_shapes`, what they cost in
`count_score_operations`, and `initialise_parameters` initialises them. Each operator of this repository, in operators.py and
hadamard.py of stages/attention, is an example. A small one, `identity_query`, whose queries are not projected:

    from stages.attention.base import SelfAttention

    class PlainQueries(SelfAttention):
        name = "plain_queries"
        equation = "softmax(X_i K_i^T / sqrt(d)) V_i, K = X W_k, V = X W_v"
        source = "an idea of mine"
        exportable = False
        linear_layers = ("key", "value")

        def compute_queries_keys_values(self, X, memory):  # memory is X itself, except in cross-attention
            return X, self.key(memory), self.value(memory)

An edit of this file trains the models of its operators anew, and no others.
"""
