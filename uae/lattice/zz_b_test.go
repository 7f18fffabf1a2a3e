package lattice
import "testing"
func BenchmarkCodec(b *testing.B){
 r,_:=newRing(R60); w:=r.acquire(); m:=make([]byte,24576); body:=make([]byte,30720)
 var c [16]uint64
 b.Run("encode",func(b *testing.B){for b.Loop(){r.encode(body,m,w.f,w.noise)}})
 b.Run("decode",func(b *testing.B){for b.Loop(){r.decode(m,body,w.f)}})
 b.Run("put",func(b *testing.B){for b.Loop(){for i:=0;i<256;i++{put60(body[i*120:],&c)}}})
 b.Run("get",func(b *testing.B){for b.Loop(){for i:=0;i<256;i++{get60(&c,body[i*120:])}}})
 b.Run("putPlain",func(b *testing.B){for b.Loop(){for i:=0;i<256;i++{putPlain60(m[i*96:],&c)}}})
 b.Run("getPlain",func(b *testing.B){for b.Loop(){for i:=0;i<256;i++{getPlain60(&c,m[i*96:])}}})
 b.Run("add",func(b *testing.B){for b.Loop(){for i:=0;i<256;i++{r.addPlain(&c,(*[16]uint64)(w.f[16*i:]),(*[98]byte)(w.noise[96*i:]))}}})
 b.Run("sub",func(b *testing.B){for b.Loop(){for i:=0;i<256;i++{r.subtract(&c,(*[16]uint64)(w.f[16*i:]))}}})
}
