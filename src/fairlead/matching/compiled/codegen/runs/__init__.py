"""Runs on kernels: their events are gathered beside chosen members, HAVING is asked, and all of them leave."""
