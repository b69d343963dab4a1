<?php

declare(strict_types=1);

namespace Rlock;

/** What a server has, by which the locks are made. */
enum Backend: string
{
    /** The module: order, hand-over at once. */
    case Module = 'module';
    /** The function library, on a server from 7.0 on. */
    case Functions = 'functions';
    /** The same library as a script. */
    case Script = 'script';
}
