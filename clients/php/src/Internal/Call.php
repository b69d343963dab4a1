<?php

declare(strict_types=1);

namespace Rlock\Internal;

use Rlock\Backend;

/** @internal A command of the module, which is a function of the library too. */
final class Call
{
    /** @var list<string> */
    private array $ofModule = [];
    /** @var list<string> */
    private array $ofLibrary = [];

    /**
     * @param bool         $isMany   whether it is the form for several keys
     * @param list<string> $keys
     * @param list<string> $words    what follows the keys
     * @param list<string> $declared what a script touches beside the lock
     */
    public function __construct(
        private readonly string $name,
        private readonly bool $isMany,
        private readonly array $keys,
        private readonly array $words,
        private readonly array $declared,
    ) {
    }

    /** Further words for the module alone. */
    public function module(array $words): self
    {
        $this->ofModule = $words;
        return $this;
    }

    /** Further words for the library alone. */
    public function plain(array $words): self
    {
        $this->ofLibrary = $words;
        return $this;
    }

    /** @return list<string> */
    public function words(Backend $backend, string $sha, bool $isCluster): array
    {
        if ($backend === Backend::Module) {
            $name = 'RLOCK.' . ($this->isMany ? 'M' : '') . strtoupper($this->name);
            $count = $this->isMany ? [(string) count($this->keys)] : [];
            return [$name, ...$count, ...$this->keys, ...$this->words, ...$this->ofModule];
        }
        $function = 'rlock1_' . ($this->isMany ? 'm' : '') . $this->name;
        $keys = $this->keys;
        foreach ($this->keys as $key) {
            array_push($keys, ...Names::declared($key, $this->declared));
        }
        $rest = [(string) count($keys), ...$keys];
        $rest = $backend === Backend::Functions ? ['FCALL' . ($this->name === 'info' ? '_RO' : ''), $function, ...$rest]
            : ['EVALSHA', $sha, ...$rest, ...($isCluster ? ['CLUSTER'] : []), $function];
        return [...$rest, ...$this->words, ...$this->ofLibrary];
    }
}
