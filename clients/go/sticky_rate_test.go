package rlock_test

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// How much a use costs beside a lock by SET and DEL: go test -run '^$' -bench Rate

func BenchmarkRateOfUses(b *testing.B) {
	y := sticky(startServer(b).locks())
	b.ReportAllocs()
	for b.Loop() {
		if err := y.Use(ctx, nothing); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRateOfUsesWithTokens(b *testing.B) {
	y := sticky(startServer(b).locks())
	for b.Loop() {
		if err := y.Use(ctx, asks); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRateOfSetAndDel(b *testing.B) {
	client := redis.NewClient(&redis.Options{Addr: startServer(b).addr()})
	defer client.Close()
	for b.Loop() {
		must(client.SetNX(ctx, "jobs", "owner", 10*time.Second).Result())
		must(client.Del(ctx, "jobs").Result())
	}
}
