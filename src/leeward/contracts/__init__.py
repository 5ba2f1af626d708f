"""What a release of each method may hold and what it must say, as data: one module a method.

Releases are rendered from here and judged by here. The judge takes no sentence and no figure from the release: it
renders the words anew from parameters and facts that it finds in the files itself.
"""
