"""Study: how soon does a masked language model learn to attend, by the length of its sequences?"""
