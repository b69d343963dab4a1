package rlock

var ReadReply = readReply
