"""Operators of your own; params.yaml names this file as `operators_file`.

An operator is one class: subclass SelfAttention or an operator, give it a name, an equation and a source, and list the
name in `operators` of params.yaml. It is then trained, counted, timed and reported beside the others. Say in
`own_shapes` and `own_work` what it has beside `linear_layers`, its Linear layers by name, and in `start_own` how that
starts. Each operator of this repository, in stages/attention, is an example. A smaller one, with queries that
are not projected:

    from stages.attention.base import SelfAttention

    class PlainQueries(SelfAttention):
        name = "plain_queries"
        equation = "softmax(X_i K_i^T / sqrt(d)) V_i, K = X W_k, V = X W_v"
        source = "an idea of mine"
        exportable = False
        linear_layers = ("key", "value")

        def queries_keys_values(self, X, memory):  # memory: X itself, or a sequence elsewhere that is attended to
            return X, self.key(memory), self.value(memory)

An edit of this file trains the models of its operators anew, and no others.
"""
