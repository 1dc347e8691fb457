"""Questions and answers on disk. The only user of SQLAlchemy."""
