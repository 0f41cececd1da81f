"""Stand-in while the real one is made: 0 -> N under fork, only for integration."""
from __future__ import annotations
import dataclasses, multiprocessing, queue, time, weakref, os
from multiprocessing import connection
import torch
from torch.utils.data import dataloader as _dl, _utils
from torch._utils import ExceptionWrapper
class NotPossible(RuntimeError): pass
@dataclasses.dataclass(frozen=True)
class LiveState:
    workers_active:int; workers_starting:int; prefetch:int; effective:bool; failures:tuple; fallback_reason:str|None; draws_random:bool|None; worker_pids:tuple; in_flight:int; ready:int
class _W:
    def __init__(s,it,i):
        c=multiprocessing.get_context("fork"); s.iq=c.Queue(); s.rq=c.Queue(); s.done=c.Event(); s.iq.cancel_join_thread()
        s.p=c.Process(target=_utils.worker._worker_loop,args=(it._dataset_kind,it._dataset,s.iq,s.rq,s.done,it._auto_collation,it._collate_fn,it._drop_last,it._base_seed,None,i,i+1,False,None),daemon=True); s.p.start(); s.n=0
    def end(s):
        s.done.set(); s.iq.put(None); s.p.join(2); 
        if s.p.is_alive(): s.p.terminate(); s.p.join(1)
        for q in (s.iq,s.rq): q.cancel_join_thread(); q.close()
class _Live(_dl._SingleProcessDataLoaderIter):
    def _next_data(self):
        live=self._gpuutil_live()
        if live is None or live._it() is not self: return super()._next_data()
        return live._next(self)
    def _stock(self): return super()._next_data()
class LiveLoader:
    def __init__(s,loader): s._l=weakref.ref(loader); s._w=[]; s._want=(0,2); s._itr=None; s._tasks={}; s._got={}; s._sent=0; s._rcv=0; s._end=False
    def _it(s): return s._itr() if s._itr else None
    def supported(s,it):
        if type(it) not in (_dl._SingleProcessDataLoaderIter,_Live): return "not single process"
        if it._dataset_kind!=_dl._DatasetKind.Map: return "the dataset is iterable: its items belong to the number of workers"
        return None
    def bind(s,it):
        it.__class__=_Live; it._gpuutil_live=weakref.ref(s); s._itr=weakref.ref(it); s._stop(); 
    def request(s,workers=None,prefetch=None):
        w,p=s._want; s._want=(w if workers is None else workers, p if prefetch is None else prefetch)
    def _stop(s):
        for w in s._w: w.end()
        s._w=[]; s._tasks={}; s._got={}; s._sent=s._rcv=0; s._end=False
    def _next(s,it):
        n,p=s._want
        if n==0 and not s._tasks:
            s._stop(); return it._stock()
        while len(s._w)<n: s._w.append(_W(it,len(s._w)))
        active=s._w[:n]
        while active and not s._end and len(s._tasks)<p*n:
            w=min(active,key=lambda w:w.n)
            try: ix=next(it._sampler_iter)
            except StopIteration: s._end=True; break
            s._tasks[s._sent]=(w,ix); w.n+=1; w.iq.put((s._sent,ix)); s._sent+=1
        if s._rcv not in s._tasks:
            if s._end: s._stop(); raise StopIteration
            return it._stock()
        w,ix=s._tasks[s._rcv]
        while s._rcv not in s._got:
            k,d=w.rq.get(timeout=30); s._got[k]=d
        d=s._got.pop(s._rcv); s._tasks.pop(s._rcv); s._rcv+=1; w.n-=1
        if isinstance(d,ExceptionWrapper): d=it._dataset_fetcher.fetch(ix)
        return d
    @property
    def state(s): return LiveState(len(s._w) if s._want[0] else 0,0,s._want[1],len(s._w)>=s._want[0] if s._want[0] else not s._w,(),None,None,tuple(w.p.pid for w in s._w),len(s._tasks),0)
    def close(s):
        it=s._it()
        if it is not None and type(it) is _Live:
            # deliver is impossible here; refetch
            it.__class__=_dl._SingleProcessDataLoaderIter; it.__dict__.pop("_gpuutil_live",None)
        s._stop()
