package main

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"strconv"

	"github.com/redis/go-redis/v9"
	rlock "github.com/rlock/rlock/clients/go"
)

func (d *driver) open(r *request) error {
	var settings []rlock.Setting
	if r.Timeout != nil {
		settings = append(settings, rlock.Timeout(ms(*r.Timeout)))
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
	client := redis.NewClient(&redis.Options{Addr: addr, Username: r.User, Password: r.Password, TLSConfig: config})
	d.locks[r.Locks] = rlock.New(client, settings...)
	d.clients = append(d.clients, client)
	return nil
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
