"""Version 2 of the Agent Client Protocol, a draft, behind `panpan acp --protocol 2`.

Sessions speak as in version 1, and their messages are translated. A prompt is answered as soon as it is in the
conversation; states tell when the session works. There is no library of version 2 for Python, so what comes in is
checked by models of ours, and what goes out are plain dictionaries. The source of all formats is the file
schema/v2/schema.json of @agentclientprotocol/sdk 2.4.0.
"""
