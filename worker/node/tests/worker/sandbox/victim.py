"""Another program of the machine, with secrets and sockets. Prints where they are, and ends with its standard input."""
import ctypes
import json
import os
import socket
import sys
import threading

folder, elsewhere = sys.argv[2:]
C = ctypes.CDLL(None)


def listen(family, address):
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen()
    return listener


def answer(udp):
    while True:
        _, sender = udp.recvfrom(16)
        udp.sendto(b"pong", sender)


os.umask(0)
tcp = listen(socket.AF_INET, ("127.0.0.1", 0))
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("127.0.0.1", 0))
threading.Thread(target=answer, args=(udp,), daemon=True).start()
abstract = f"atlas-victim-{os.getpid()}"
sockets = [
    listen(socket.AF_UNIX, "\0" + abstract),
    listen(socket.AF_UNIX, folder + "/socket"),
    listen(socket.AF_UNIX, elsewhere + "/socket"),
]
key = os.getpid()
segment = C.shmget(key, 4096, 0o1666)
print(
    json.dumps(
        {
            "victim": os.getpid(),
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "abstract": abstract,
            "unix_in_tmp": folder + "/socket",
            "unix_elsewhere": elsewhere + "/socket",
            "shm_key": key,
        }
    ),
    flush=True,
)
sys.stdin.read()
C.shmctl(segment, 0, None)
