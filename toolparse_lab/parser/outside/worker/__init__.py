"""The process in which somebody else's parser runs. Standard library only: it is started under another interpreter."""
