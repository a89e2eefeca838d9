"""Who may do what: a policy, as the configuration of a NATS server and as the gateway's rules.

policy.py          the policy: users and what each may publish, read, own
subjects.py        the subjects of a server that each user needs, and what no server enforces
server_config.py   these as a server's configuration
apply.py           creates what users need and may not create
check.py           what a server lets a user do, compared with the policy
"""
