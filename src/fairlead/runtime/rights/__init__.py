"""Who may do what: a policy, as the configuration of a NATS server and as the gateway's rules.

policy.py          the policy: users and what each may publish, read, own
subjects.py        what each user may ask of a server, and what no server enforces
server_config.py   that as a server's configuration: an account for each user
apply.py           creates what users need and may not create
check.py           what a server lets a user do, compared with the policy
"""
