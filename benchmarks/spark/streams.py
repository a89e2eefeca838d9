SIDES = {}


def everything(*_):
    return []
