"""Operators of your own; params.yaml names this file as `operators_file`.

Write one class per operator: subclass SelfAttention or an operator of the repository, and list the name in
`operators` of params.yaml. The pipeline then trains, counts, times and reports the operator. The class has

- `name`, `equation` and `source`, for the report.
- `linear_layers`, the names of the Linear layers. `roles` says which layers give queries, keys and values.
- `compute_queries_keys_values`, if the layers alone do not give queries, keys and values.
- `compute_source_spread` and `score_factors`, if the class changes the scores or first values: the spread of the first
  scores, and the parameters that scale the scores. Without these, the spread is unknown, and `score_spread` is refused.
- `list_parameter_shapes`, `count_score_operations` and `initialise_parameters`, if there are parameters outside Linear
  layers: the shapes, the operations and the first values.

A model keeps Linear layers, the parameters of `list_parameter_shapes`, and buffers of `register_buffer` without
`persistent=False`. Other tensors would be lost when a model is saved; `python -m stages settings` names them.

The operators in stages/attention/operators.py and hadamard.py, with the first three in catalogue.py, are examples. In
this small example, queries are not projected:

    from stages.attention.base import SelfAttention

    class PlainQueries(SelfAttention):
        name = "plain_queries"
        equation = "softmax(X_i K_i^T / sqrt(d)) V_i, K = X W_k, V = X W_v"
        source = "an idea of mine"
        exportable = False
        linear_layers = ("key", "value")

        def compute_queries_keys_values(self, X, memory):  # memory is X itself, except in cross-attention
            return X, self.key(memory), self.value(memory)

An edit of the code in this file trains the models of the operators in this file again, and no other models. Comments
and docstrings do not count.
"""
