import redis
import rlock

locks = rlock.Locks(redis.Redis())

with locks.hold("jobs", wait=10) as hold:
    print("I have the lock, with token", hold.token)
    # ... the work; storage refuses a smaller token than it has seen

print("released")
locks.close()
