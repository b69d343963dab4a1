package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	rlock "rlock.invalid/clients/go"
)

func (d *driver) open(r *request) error {
	var settings []rlock.Setting
	if r.Timeout != nil {
		settings = append(settings, rlock.Timeout(ms(*r.Timeout)))
	}
	if r.Backend == "module" {
		settings = append(settings, rlock.NeedModule())
	}
	if r.AskAgain > 0 {
		settings = append(settings, rlock.AskEvery(ms(r.AskAgain)))
	}
	if r.Patience != nil {
		patience, err := patience(r.Patience)
		if err != nil {
			return err
		}
		settings = append(settings, patience)
	}
	config, err := trust(r)
	if err != nil {
		return err
	}
	addr := net.JoinHostPort(r.Host, strconv.Itoa(r.Port))
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if r.Cluster {
		client := redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: []string{addr}, Username: r.User, Password: r.Password, TLSConfig: config,
		})
		d.locks[r.Locks] = rlock.NewCluster(client, settings...)
		d.clients = append(d.clients, client)
		return nil
	}
	options := &redis.Options{Addr: addr, Username: r.User, Password: r.Password, TLSConfig: config}
	if r.Tight {
		// What a program may have set for its own commands, as narrow as it can be.
		options.ReadTimeout, options.WriteTimeout = 200*time.Millisecond, 200*time.Millisecond
		options.PoolTimeout, options.PoolSize, options.MaxRetries = 100*time.Millisecond, 1, -1
		options.ConnMaxIdleTime, options.ConnMaxLifetime = 100*time.Millisecond, time.Second
		options.ContextTimeoutEnabled = true
	}
	client := redis.NewClient(options)
	d.locks[r.Locks] = rlock.New(client, settings...)
	d.clients = append(d.clients, client)
	return nil
}

// patience is a number of ms, or null.
func patience(word json.RawMessage) (setting rlock.Setting, err error) {
	defer func() {
		if wrong := recover(); wrong != nil {
			err = fmt.Errorf("%w: %v", rlock.ErrArgument, wrong)
		}
	}()
	var number *int64
	if err := json.Unmarshal(word, &number); err != nil {
		return nil, fmt.Errorf("%w: %v", rlock.ErrArgument, err)
	}
	if number == nil {
		return rlock.NoHeartbeat(), nil
	}
	return rlock.Patience(ms(*number)), nil
}

// trust is nil without TLS.
func trust(r *request) (*tls.Config, error) {
	if !r.TLS {
		return nil, nil
	}
	pem, err := os.ReadFile(r.CA)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: roots, ServerName: r.Host}, nil
}
