"""A lean HTTP/1.1 client for deliveries: one POST at a time on a kept connection, bounded whatever the receiver does.

It follows no redirect, uses no proxy, keeps no cookie and decompresses nothing. Decision 41 says why we wrote it.
"""
