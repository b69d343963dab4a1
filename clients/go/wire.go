package rlock

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
)

// RESP3, as much of it as a session uses. go-redis opens the connection, but takes
// a message that comes on it for the reply to the next command.

type push []any

func appendCommand(out []byte, words ...string) []byte {
	out = append(strconv.AppendInt(append(out, '*'), int64(len(words)), 10), "\r\n"...)
	for _, word := range words {
		out = append(strconv.AppendInt(append(out, '$'), int64(len(word)), 10), "\r\n"...)
		out = append(append(out, word...), "\r\n"...)
	}
	return out
}

// readReply gives a string, int64, nil, replyError, []any (maps too, flat) or push.
func readReply(in *bufio.Reader) (any, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if len(line) < 3 {
		return nil, fmt.Errorf("no reply: %q", line)
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '+', ',', '(', '#':
		return text, nil
	case '-':
		return replyError(text), nil
	case '_':
		return nil, nil
	case ':':
		return strconv.ParseInt(text, 10, 64)
	case '$', '=', '!':
		return readBulk(in, kind, text)
	case '*', '~', '>', '%', '|':
		return readArray(in, kind, text)
	}
	return nil, fmt.Errorf("no reply: %q", line)
}

func readBulk(in *bufio.Reader, kind byte, length string) (any, error) {
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 {
		return nil, err
	}
	text := make([]byte, n+2)
	if _, err := io.ReadFull(in, text); err != nil {
		return nil, err
	}
	switch text = text[:n]; kind {
	case '!':
		return replyError(text), nil
	case '=':
		return string(text[min(4, n):]), nil // it begins with "txt:"
	}
	return string(text), nil
}

func readArray(in *bufio.Reader, kind byte, length string) (any, error) {
	n, err := strconv.Atoi(length)
	if err != nil || n < 0 {
		return nil, err
	}
	if kind == '%' || kind == '|' {
		n *= 2
	}
	all := make([]any, n)
	for i := range all {
		if all[i], err = readReply(in); err != nil {
			return nil, err
		}
	}
	switch kind {
	case '>':
		return push(all), nil
	case '|': // attributes, which belong to the reply that follows
		return readReply(in)
	}
	return all, nil
}
