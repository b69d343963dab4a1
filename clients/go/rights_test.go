package rlock_test

// littleRights is what the README says that a user needs.
const littleRights = "~lock:* ~*:{lock:* ~{lock:* &rlock:* &redisson_* +fcall +fcall_ro +time +type +exists +hlen +hget " +
	"+hgetall +get +strlen +pttl +pexpiretime +lindex +zrange +zrank +zcard +zscore +zadd +zrem +hset +hincrby +hdel +set +incrby " +
	"+setrange +pexpireat +del +publish +spublish +info +subscribe +ssubscribe +unsubscribe +sunsubscribe +ping +hello " +
	"+client|setname +command|info"
